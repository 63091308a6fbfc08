"""StreamsGroupHeartbeat: the one request by which members join, stay in and leave a group."""
