"""What tests wait for that have a broker of their own."""
