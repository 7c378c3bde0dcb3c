// Command cards prints the cards of this machine, or why it knows none.
package main

import (
	"fmt"

	"kvbench/tracing/nvml"
)

func main() { fmt.Println(nvml.Cards()) }
