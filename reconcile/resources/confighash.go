package resources

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// configHashBytes is the length of a config hash. It is long enough that two
// contents never have the same hash by accident, and short enough to read aloud.
const configHashBytes = 8

// ConfigHash returns a hash, in hexadecimal digits, of the files that a node sees
// in the mounted ConfigMap. Only the names and bytes of the files count. Their order
// does not, nor whether they are in data or in binaryData. Without a ConfigMap the
// hash is empty.
//
// A release that computed another value for the same content would restart
// every node of every cache that has a config.
func ConfigHash(cm *corev1.ConfigMap) string {
	if cm == nil {
		return ""
	}
	files := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for name, content := range cm.Data {
		files[name] = []byte(content)
	}
	maps.Copy(files, cm.BinaryData)

	// The length of every part comes before it, so that two different sets of files
	// never give the same bytes.
	var framed []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		framed = binary.BigEndian.AppendUint64(framed, uint64(len(name)))
		framed = append(framed, name...)
		framed = binary.BigEndian.AppendUint64(framed, uint64(len(files[name])))
		framed = append(framed, files[name]...)
	}
	sum := sha256.Sum256(framed)
	return hex.EncodeToString(sum[:configHashBytes])
}
