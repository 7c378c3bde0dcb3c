package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"kvbench/workloads/model"
)

// runModels prints a table of the bytes per token of models. If a configuration is refused, it
// continues with the others and the exit code is 1; if one cannot be read, the exit code is 2.
func runModels(c *Call) func([]string) error {
	dtype := c.String("kv-dtype", model.OwnType, "")
	return func(args []string) error {
		if !slices.Contains(model.DTypes(), *dtype) {
			return fmt.Errorf("-kv-dtype: must be one of %s, given %q",
				strings.Join(model.DTypes(), ", "), *dtype)
		}
		// Continue after a missing file.
		var names []string
		missing := map[string]error{}
		for _, arg := range args {
			files, err := configs(arg)
			if err != nil {
				files, missing[arg] = []string{arg}, err
			}
			names = append(names, files...)
		}
		// Without arguments, list the built-in models.
		if len(args) == 0 {
			for _, m := range model.BuiltIn() {
				names = append(names, m.Key)
			}
		}
		// tabwriter fits the columns to the longest path: paths distinguish checkpoints of one model.
		w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
		refused, unread := 0, 0
		fmt.Fprintln(w, "model\tB per token\tB per sequence\ttype\tattention: layers × bytes, source")
		for _, name := range names {
			m, err := model.Find(name, nil)
			if err != nil && missing[name] != nil {
				err = missing[name]
			}
			if err == nil {
				m, err = m.In(*dtype)
			}
			if err != nil {
				// Cut the name, which the line already has, and join lines.
				verdict := "refused"
				refused++
				if err == missing[name] || model.Unreadable(err) {
					verdict = "unreadable"
					unread++
				}
				reason := strings.NewReplacer("model configuration "+name+": ", "",
					fmt.Sprintf("model %q: ", name), "", "model without a name: ", "",
					"read model configuration: ", "",
					"open "+name+": ", "", "lstat "+name+": ", "", "\n", "; ").Replace(err.Error())
				fmt.Fprintf(w, "%s\t-\t-\t-\t%s: %s\n", name, verdict, reason)
				continue
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s: %s\n", name, m.BytesPerToken(), m.FixedBytes(),
				cmp.Or(m.StoredAs, m.DType, assumed(name)), m.Attention, m.Arithmetic())
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if unread > 0 {
			c.say(fmt.Sprintf("%d of %d models cannot be read", unread, len(names)))
			return errSaid
		}
		if refused > 0 {
			c.say(fmt.Sprintf("%d of %d configurations were refused", refused, len(names)))
			return errNo
		}
		return nil
	}
}

// assumed returns the data type of a model that states none.
func assumed(name string) string {
	if filepath.Ext(name) == ".json" {
		return "float16 (assumed: the file names none)"
	}
	return "float16"
}

// configs returns the model configurations at a path: a file itself, or in each directory config.json
// and every NAME_config.json. In a directory with config.json, NAME_config.json must have layers,
// because a checkpoint has other files such as tokenizer_config.json.
func configs(path string) (list []string, err error) {
	checkpoint := ""
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, dir := filepath.Base(file), filepath.Dir(file)
		if name == "config.json" {
			checkpoint = dir
		}
		// WalkDir walks in the order of names: config.json comes before generation_config.json.
		other := dir == checkpoint && !hasLayers(file) ||
			strings.HasSuffix(name, "quant_config.json")
		if file == path || name == "config.json" ||
			strings.HasSuffix(name, "_config.json") && !other {
			list = append(list, file)
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("no config.json or NAME_config.json under %s", path)
	}
	return list, err
}

// hasLayers reports whether a file is a model configuration.
func hasLayers(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && bytes.Contains(text, []byte(`"num_hidden_layers"`))
}
