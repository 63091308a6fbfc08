"""Consumer groups of the newer protocol (KIP-848), in which the coordinator assigns partitions.

Decided and replayed as classic groups are. What is stored: the group's epoch, which grows with
each change of members, subscriptions or topics; the target assignment of one such epoch; and for
each member what it subscribes to and what it owns now. A heartbeat moves its member one step
towards the target: it first has to give up what others shall have, then it gets what is free. A
partition has one owner at a time because nobody is given what another still owns.

Start reading at `group`, then `reconciliation` and `heartbeats`. May import what `coordinator` may;
only `coordinator.shard` and the broker import it.
"""
