"""Hostile clients: a million damaged, huge and senseless frames, and what they must not do.

`python -m tests.hostile --frames 1000000 --seed 1`, or `make hostile`. A run starts a broker, has
controls use it as anybody would (`controls` in `clients/`), lets strangers mistreat it (`attackers`
there send frames, `bystanders` do not read, claim what they never send, or come and go), and judges
(`run`): whether the controls were disturbed, whether memory came back, what the broker's log says.

Every frame follows from the seed and its number (`frames/`), up to identifiers that the broker
gave: topic ids, member ids, producer ids, fetch sessions. So a frame that did harm can be sent
again, alone or with those around it (`--range`), and looked for by halving (`--bisect`).
Start reading in `frames.frame`, then `frames.blocks` and `run`.
"""
