"""The sticky assignor of tasks: start at `sticky`."""
