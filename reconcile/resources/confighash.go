package resources

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// configHashBytes is the length of a config hash: enough that two contents
// never meet by accident, short enough to read out.
const configHashBytes = 8

// ConfigHash is a hash, in hexadecimal digits, of the files that a node sees
// in the mounted ConfigMap: their names and bytes, whatever their order, and
// whether they are kept in data or in binaryData. Nothing else of the object
// counts. Empty without a ConfigMap.
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

	// Every part is preceded by its length, so that no two sets of files run
	// together into the same bytes.
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
