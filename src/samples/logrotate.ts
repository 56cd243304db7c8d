/** Rotates the file of [log] file. */
export const LOGROTATE = `# For /etc/logrotate.d/wirewatch, where wirewatch.toml has [log] file = "/var/log/wirewatch/wirewatch.log".
# Make the folder: install -d -m 0750 -o wirewatch -g wirewatch /var/log/wirewatch

/var/log/wirewatch/wirewatch.log {
    su wirewatch wirewatch
    daily
    rotate 30
    missingok
    notifempty
    compress
    delaycompress
    # Wirewatch creates the new file itself. Not copytruncate, which loses lines.
    nocreate
    postrotate
        systemctl reload wirewatch
    endscript
}
`;
