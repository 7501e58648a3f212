# What the node's interfaces are, as the node itself says.
addresses=$(ip address | awk '$1 ~ /^inet6?$/ { sub("/.*", "", $2); printf "%s\"%s\"", sep, $2; sep = "," }')
# A socket that listens has, in /proc/net, state 0A for TCP and 07 for UDP; ports are
# hexadecimal there.
ports() {
	sep=
	for hex in $(cat "/proc/net/$1" "/proc/net/${1}6" | awk -v state="$2" '$4 == state { sub(".*:", "", $2); print $2 }' | sort -u); do
		printf '%s%d' "$sep" "0x$hex"
		sep=,
	done
}
echo "op-readiness: {\"hostname\": \"$(hostname)\", \"addresses\": [$addresses], \"tcp\": [$(ports tcp 0A)], \"udp\": [$(ports udp 07)]}"
