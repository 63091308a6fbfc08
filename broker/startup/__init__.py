"""How a broker starts: from stage to stage, each of them whole once it is there.

    machine        event loop, clocks, tasks, descriptors
    addresses      ports are taken; nobody is served yet
    logs           log directories are locked, and the threads there that work on them
    metadata       the metadata store is open, and the broker knows its id
    settings       property file and store together say what holds; then the logs are loaded
    parts          all that the broker consists of (`cluster_parts` first), not at work yet

Each stage is a value that is made of those before it, and pushes how it is undone onto one
`UndoStack` (`broker.runtime.shutdown`). Start reading at `broker.app`, which goes through them and
then puts the parts to work; nobody else imports this package, but `__main__` for `StartError`.
"""
