"""Programs in Go."""
