package fields

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a live object as the API server returned it.
type Object interface {
	metav1.Object
	runtime.Object
}

// Manager is an entry of an object's managedFields.
type Manager struct {
	Name      string    `json:"name"`
	Operation string    `json:"operation"`
	Time      time.Time `json:"time"`
}

// Change is one field that we own, or want to own, and that differs from our
// intent.
type Change struct {
	// Path names list items by their merge keys, as in
	// spec.template.spec.containers[cache].image.
	Path string `json:"path"`
	// From and To are the live and the wanted value as compact JSON. An empty
	// string means that the value is absent. They are equal when we only lost the
	// ownership.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// By lists the other managers that own the field now.
	By []Manager `json:"by,omitempty"`
}
