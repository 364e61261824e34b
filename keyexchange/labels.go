package keyexchange

// Domain separators. Each names the version of the scheme; a change to what is
// derived or signed under one of them needs a new version.
const (
	labelRoster   = "hushsum/1 roster"
	labelKey      = "hushsum/1 key"
	labelChain    = "hushsum/1 chain"
	labelRatchet  = "hushsum/1 ratchet"
	labelChannels = "hushsum/1 channels"
	labelMask     = "hushsum/1 mask"
)
