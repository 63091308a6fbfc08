"""Start of a broker: from stage to stage, each complete before the next.

    machine        event loop, clocks, tasks, descriptors
    addresses      ports are bound; no client is served yet
    logs           log directories are locked, and their threads exist
    metadata       the metadata store is open, and the broker knows its id
    settings       property file and store together give the settings; then the logs are loaded
    parts          all parts of the broker (`cluster_parts` first), not at work yet

Each stage is a value built from those before it, and pushes its undoing onto one `UndoStack`
(`broker.runtime.shutdown`). Start reading at `broker.app`, which goes through them and then puts
the parts to work; no other module imports this package, but `__main__` for `StartError`.
"""
