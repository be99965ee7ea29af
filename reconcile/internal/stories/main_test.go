package stories_test

import (
	"os"
	"testing"

	"example.com/clusteredcache/reconcile/internal/testenv"
)

// env is a real API server with the real controllers.
var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }
