# Prints the end of LOG's log: of its journal, or of a file below /var/log. /node is
# the node's own file system.
if chroot /node journalctl --field _SYSTEMD_UNIT 2>/dev/null | grep -qxF "$LOG.service"; then
	chroot /node journalctl --unit="$LOG" --utc --no-pager --output=short-precise --lines=100000 | tail -c "$LIMIT"
	exit
fi
for file in "/node/var/log/$LOG.log" "/node/var/log/$LOG/$LOG.log"; do
	if [ -f "$file" ]; then
		tail -c "$LIMIT" "$file"
		exit
	fi
done
echo "there is no journal of $LOG.service, and no file $LOG.log below /var/log"
exit 3
