# What terminal_picture.py types: one command per line.
dcs up --local 2
seq 300 | dcs map -- sh -c 'sleep 0.02; factor "$1"' sh {} >factors &
sleep 2; kill -9 $! $(dcs status -o json | grep -o '"pid":[0-9]*' | cut -d: -f2)
dcs up
seq 300 | dcs map -- sh -c 'sleep 0.02; factor "$1"' sh {} >factors
seq 300 | factor | cmp - factors && echo "not one lost, not one twice"
