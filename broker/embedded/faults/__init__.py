"""What clients ask of an embedded broker: kept for assertions, and spoilt on demand."""
