"""`quorate check`: whether a recorded history is one that the objects' types allow."""
