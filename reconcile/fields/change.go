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

// Change is one field that we own or want to own and that is not as it should be.
type Change struct {
	// Path is addressed by merge keys: spec.template.spec.containers[cache].image.
	Path string `json:"path"`
	// From and To are the live and the wanted value as compact JSON; empty
	// means absent. Both are equal when only the ownership was lost.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// By are the managers that own the field now, other than ours.
	By []Manager `json:"by,omitempty"`
}
