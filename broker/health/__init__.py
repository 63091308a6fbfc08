"""How a broker is, for those who look after services: systemd, containers, load balancers.

What it is: what systemd is told (`service_notices`), and a command that asks a broker whether it
answers (`python -m broker.health`). What it is not: a look at replicas or disks, for which there
are metrics. `broker.__main__` and `broker.node` import it. Start reading in either module.
"""
