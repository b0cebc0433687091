"""`python -m oltr`, where the command `oltr` is not on the path."""

from oltr.cli.main import main

if __name__ == "__main__":
    main()
