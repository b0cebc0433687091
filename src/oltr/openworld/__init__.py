"""What happens after "unknown": unknowns clustered and named, classes added, the weekly loop simulated."""
