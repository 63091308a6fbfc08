"""Topics: names, creation, growth, import from log directories, deletion."""
