println("café")
error("l2")
