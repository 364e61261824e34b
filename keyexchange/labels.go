package keyexchange

// Domain separators. Each names the version of the scheme; a change to what is
// derived or signed under one of them needs a new version.
const (
	labelRoster   = "hushsum/2 roster"
	labelKey      = "hushsum/2 key"
	labelChain    = "hushsum/2 chain"
	labelRatchet  = "hushsum/2 ratchet"
	labelChannels = "hushsum/2 channels"
	labelMask     = "hushsum/2 mask"
)
