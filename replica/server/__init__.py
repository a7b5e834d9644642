"""The process: the application put together, listening, starting and stopping."""
