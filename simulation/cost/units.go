package cost

// Units are the times of single operations on one core, in seconds.
type Units struct {
	KeyPair     float64 `json:"key_pair"`  // X25519 and ML-KEM, of one party
	Agree       float64 `json:"agree"`     // X25519 with one peer
	ParseKey    float64 `json:"parse_key"` // an ML-KEM key taken apart, as it arrives
	Encapsulate float64 `json:"encapsulate"`
	Decapsulate float64 `json:"decapsulate"`
	Chain       float64 `json:"chain"`    // made from what was agreed
	Step        float64 `json:"step"`     // of a chain
	Derive      float64 `json:"derive"`   // the seed of a mask, from a step's secret
	Channels    float64 `json:"channels"` // the keys that seal for one peer and round
	Sign        float64 `json:"sign"`
	Verify      float64 `json:"verify"`
	Statement   float64 `json:"statement"`   // a byte of what is signed, on top
	Seal        float64 `json:"seal"`        // a share
	Open        float64 `json:"open"`        // a share, and checked
	Coefficient float64 `json:"coefficient"` // drawn, for a secret that is split
	Split       float64 `json:"split"`       // a secret, for each holder and coefficient
	Combine     float64 `json:"combine"`     // for holders that are new
	Difference  float64 `json:"difference"`  // for each two of them, on top
	Leave       float64 `json:"leave"`       // for holders that are known but one, for each share
	Rebuild     float64 `json:"rebuild"`     // a secret, for each share
	Seed        float64 `json:"seed"`        // of a mask, before its first coordinate
	Mask        float64 `json:"mask"`        // a coordinate
	Pack        float64 `json:"pack"`        // a coordinate
	Add         float64 `json:"add"`         // a packed coordinate to a sum
	Hash        float64 `json:"hash"`        // a byte
	Leaf        float64 `json:"leaf"`        // of a hash tree, of a ciphertext
	Node        float64 `json:"node"`        // of a hash tree
	Climb       float64 `json:"climb"`       // a node added to a path
	Entry       float64 `json:"entry"`       // a party's signed keys in the list of all
	Listed      float64 `json:"listed"`      // a party looked up in a set and listed
	Place       float64 `json:"place"`       // a party placed in a sparse graph
	Near        float64 `json:"near"`        // a neighbour found in one
	Take        float64 `json:"take"`        // a share out of a message
	Give        float64 `json:"give"`        // a share into a message, from another's
	Reveal      float64 `json:"reveal"`      // a share in the open out of a message
	Attach      float64 `json:"attach"`      // a signature to a certificate
	Copy        float64 `json:"copy"`        // a byte of a message
	Unmask      float64 `json:"unmask"`      // a coordinate of a one-message sum, freed of its key
	Training    float64 `json:"training"`    // one weight, one row, one step
}

// Reference returns the units of one core of the machine that the project's figures are
// of, a virtual Intel Xeon with AES, SHA and AVX-512: rounded, so that what is simulated
// with them is the same everywhere.
func Reference() Units {
	return Units{
		KeyPair:     90e-6,
		Agree:       36e-6,
		ParseKey:    18e-6,
		Encapsulate: 36e-6,
		Decapsulate: 52e-6,
		Chain:       1.7e-6,
		Step:        1.3e-6,
		Derive:      0.95e-6,
		Channels:    1.7e-6,
		Sign:        18e-6,
		Verify:      41e-6,
		Statement:   1.9e-9,
		Seal:        0.65e-6,
		Open:        0.65e-6,
		Coefficient: 0.1e-6,
		Split:       5e-9,
		Combine:     8.5e-6,
		Difference:  5e-9,
		Leave:       34e-9,
		Rebuild:     28e-9,
		Seed:        0.6e-6,
		Mask:        0.52e-9,
		Pack:        1e-9,
		Add:         1.7e-9,
		Hash:        0.6e-9,
		Leaf:        1e-6,
		Node:        0.36e-6,
		Climb:       40e-9,
		Entry:       0.18e-6,
		Listed:      9.5e-9,
		Place:       33e-9,
		Near:        26e-9,
		Take:        42e-9,
		Give:        0.2e-6,
		Reveal:      0.19e-6,
		Attach:      0.27e-6,
		Copy:        0.5e-9,
		Unmask:      24e-9,
		Training:    0.5e-9,
	}
}
