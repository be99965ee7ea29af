package resources

import (
	"slices"
	"strconv"
	"strings"

	v1 "example.com/clusteredcache/api/v1"
)

// memcachedArgs are the derived arguments, then those of the user. A derived
// flag that the user gives is left out: memcached takes the last one, but two
// would make the pod lie to whoever reads it.
func memcachedArgs(spec *v1.ClusteredCacheSpec, port int32) []string {
	given := memcachedFlags(spec.Args)
	var args []string
	if limit := itemMemoryMiB(spec); limit > 0 && !given['m'] {
		args = append(args, "-m", strconv.FormatInt(limit, 10))
	}
	if !given['p'] {
		args = append(args, "-p", strconv.Itoa(int(port)))
	}
	return slices.Concat(args, spec.Args)
}

// itemMemoryMiB is the memory for items, in MiB: 80 % of the memory limit. The
// rest is for connections, threads and the hash table, which memcached does
// not count. Without a limit it is 0: memcached's own default (64) holds.
func itemMemoryMiB(spec *v1.ClusteredCacheSpec) int64 {
	limit := spec.Resources.Limits.Memory().Value()
	if limit <= 0 {
		return 0
	}
	const mebibyte = 1 << 20
	return max(1, limit/5*4/mebibyte)
}

// memcachedWithValue are memcached's short options that take a value. What
// follows such a letter, in the same argument or as the next, is no option.
const memcachedWithValue = "abBcDefIlmnNopPRstuUY"

// memcachedLong are the long names of the derived flags, each with the
// shortest abbreviation that getopt accepts for it.
var memcachedLong = []struct {
	letter         byte
	name, shortest string
}{
	{'m', "memory-limit", "memory-l"},
	{'p', "port", "po"},
}

// memcachedFlags reads args as memcached does and says which derived flags
// they give, by their short letter.
func memcachedFlags(args []string) map[byte]bool {
	given := map[byte]bool{}
	for i := 0; i < len(args); i++ {
		long, isLong := strings.CutPrefix(args[i], "--")
		switch {
		case args[i] == "--":
			return given
		case isLong:
			name, _, _ := strings.Cut(long, "=")
			for _, flag := range memcachedLong {
				if strings.HasPrefix(flag.name, name) && strings.HasPrefix(name, flag.shortest) {
					given[flag.letter] = true
				}
			}
		case strings.HasPrefix(args[i], "-"):
			letters := args[i][1:]
			at := strings.IndexAny(letters, memcachedWithValue)
			if at < 0 {
				continue
			}
			given[letters[at]] = true
			if at == len(letters)-1 {
				i++ // the next argument is its value
			}
		}
	}
	return given
}
