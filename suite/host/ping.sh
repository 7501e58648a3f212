# Pings each of TARGETS, "address,port" with blanks between them, three times, and
# connects to its port once.
found=
for target in $TARGETS; do
	address=${target%,*}
	answers=0
	for n in 1 2 3; do
		ping -c 1 -W 2 "$address" >/dev/null 2>&1 && answers=$((answers + 1))
	done
	connects=false
	nc -w 3 "$address" "${target##*,}" </dev/null >/dev/null 2>&1 && connects=true
	found="$found${found:+, }\"$address\": {\"answers\": $answers, \"connects\": $connects}"
done
echo "op-readiness: {\"pings\": {$found}}"
