# Makes the good input that the rows of tests/hostile change, in the working folder. The programs are in the PATH.
set -euo pipefail

cat >c.toml <<'TOML'
seed = 1
device = "host"
[data]
path = "ds"
history_length = 8
history_strategy = "last_n"
min_history = 2
window_seconds = 86400
[features]
[[features.attributes]]
name = "artist_id"
[model]
embedding_dim = 8
dim = 8
layers = 1
heads = 1
head_dim = 8
preprocessor_hidden = 8
head_hidden = 8
action_dim = 4
positions = 16
max_sequence = 16
[training]
batch_size = 32
max_steps = 4
[evaluation]
holdout_seconds = 86400
TOML
cat >r.toml <<'TOML'
seed = 1
device = "host"
[data]
path = "ds"
history_length = 8
history_strategy = "last_n"
min_history = 2
window_seconds = 0
anchor_stride = 0
[model]
kind = "retrieval"
embedding_dim = 8
[training]
max_steps = 2
[evaluation]
split = "valid"
TOML
cat >schema.toml <<'TOML'
name = "shop"
files = ["*.parquet"]
user = "user"
item = "item"
time = "at"
label = "bought"
pools = ["bought", "viewed"]
[[action]]
name = "bought"
bit = 1
when = ["kind = buy"]
[[action]]
name = "viewed"
bit = 2
when = ["kind = view", "seconds >= 5"]
TOML
mkdir csv
{
  echo user,item,at,kind,seconds,brand
  for i in 1 2 3 4 5 6 7 8 9; do printf 'u%d,"item, %d",2024-05-01T00:00:0%d.5Z,%s,%d,b%d\n' $((i % 3)) $((i % 4)) "$i" "$([ $((i % 2)) = 0 ] && echo buy || echo view)" "$i" $((i % 2)); done
} >csv/log.csv
{
  sed 's/\*.parquet/log.csv*/' schema.toml
  printf '[[attribute]]\nname = "brand"\ncolumn = "brand"\n'
} >csv.toml
mkdir ml
for i in 1 2 3 4 5 6 7 8 9; do printf '1\t%d\t%d\t%d\n' "$i" $((1 + i % 5)) $((880000000 + i)); done >ml/u.data
for i in 1 2 3 4 5 6 7 8 9; do printf '%d|Film %d (1995)|01-Jan-1995\n' "$i" "$i"; done >ml/u.item
hstu generate yambda --users 12 --days 4 --items 40 --seed 1 --output events
hstu prepare yambda --input events --output ds --test-days 0 --min-history 2
hstu train c.toml --threads 1 --output run
