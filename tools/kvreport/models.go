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

// runModels lists the bytes per token of models, a line each. All models are in one table so that
// they can be compared. If a configuration is refused, the others are still listed and the exit
// code is 1.
func runModels(c *Call) func([]string) error {
	dtype := c.String("kv-dtype", model.OwnType, "")
	return func(args []string) error {
		if !slices.Contains(model.DTypes(), *dtype) {
			return fmt.Errorf("-kv-dtype: must be one of %s, given %q",
				strings.Join(model.DTypes(), ", "), *dtype)
		}
		// A missing file does not hide the rows of the others.
		var names []string
		missing := map[string]error{}
		for _, arg := range args {
			files, err := configs(arg)
			if err != nil {
				files, missing[arg] = []string{arg}, err
			}
			names = append(names, files...)
		}
		// Without arguments it lists the built-in models.
		if len(args) == 0 {
			for _, m := range model.BuiltIn() {
				names = append(names, m.Key)
			}
		}
		// Columns are as wide as the longest name: paths of checkpoints are long, and the path is what
		// distinguishes two files of a model.
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
				// The line has the name already, and a reason may have several lines.
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

// assumed is the type of a model that names none.
func assumed(name string) string {
	if filepath.Ext(name) == ".json" {
		return "float16 (assumed: the file names none)"
	}
	return "float16"
}

// configs returns the configuration files of a path. A file stands for itself. In each directory
// they are config.json and every NAME_config.json. Next to config.json only those with layers
// count: a checkpoint has other files with that ending, such as tokenizer_config.json.
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
		// WalkDir goes by name: config.json comes before generation_config.json.
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

// hasLayers reports whether a file describes a model.
func hasLayers(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && bytes.Contains(text, []byte(`"num_hidden_layers"`))
}
