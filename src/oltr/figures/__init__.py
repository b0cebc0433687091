"""Figures: a file that declares FIGURE is one figure of the report page, with its numbers and its drawing."""
