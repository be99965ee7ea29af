// lua runs a health check of Argo CD: the script in a file, with the object on
// standard input as obj. It prints the returned status and message.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(script string) error {
	var object any
	if err := json.NewDecoder(os.Stdin).Decode(&object); err != nil {
		return err
	}
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", value(l, object))
	if err := l.DoFile(script); err != nil {
		return err
	}
	health, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return fmt.Errorf("the script returned %s", l.Get(-1).Type())
	}
	_, err := fmt.Printf("%s: %s\n", health.RawGetString("status"), health.RawGetString("message"))
	return err
}

// value is a JSON value as Argo CD hands it over: null is absent.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		t := l.NewTable()
		for _, item := range v {
			t.Append(value(l, item))
		}
		return t
	case map[string]any:
		t := l.NewTable()
		for key, item := range v {
			t.RawSetString(key, value(l, item))
		}
		return t
	}
	return lua.LNil
}
