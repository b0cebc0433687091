"""What happens after "unknown": unknowns clustered, the ones to name first, and the weekly loop of naming."""
