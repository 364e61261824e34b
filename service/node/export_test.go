package node

// SayLeaves says to all nodes, under the key of one of them, that a node leaves a federation.
func SayLeaves(n *Node, name, id string) {
	third := &Node{Options: Options{Name: name}, conn: n.conn, between: n.between}
	third.say(id, true)
}
