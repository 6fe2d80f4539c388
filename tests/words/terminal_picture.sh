# What terminal_picture.py types: one command per line.
dcs up --local 2 | head -n 1
seq 40 | dcs map -- sh -c 'sleep 0.2; factor "$1"' sh {} >factors &
sleep 4; kill -9 $! $(dcs status -o json | grep -o '"pid":[0-9]*' | cut -d: -f2)   # all processes
dcs up | head -n 1
seq 40 | dcs map -- sh -c 'sleep 0.2; factor "$1"' sh {} >factors
seq 40 | factor | cmp - factors && echo "not one lost, not one twice"
dcs down
