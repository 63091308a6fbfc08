"""From a frame to a response: dispatch, the API table, long requests, the startup gate."""
