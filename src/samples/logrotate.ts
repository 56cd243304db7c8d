/** Rotates the log file. */
export const LOGROTATE = `# Install as /etc/logrotate.d/wirewatch, with [log] file = "/var/log/wirewatch/wirewatch.log" in wirewatch.toml.
# Create the folder: install -d -m 0750 -o wirewatch -g wirewatch /var/log/wirewatch

/var/log/wirewatch/wirewatch.log {
    su wirewatch wirewatch
    daily
    rotate 30
    missingok
    notifempty
    compress
    delaycompress
    # Wirewatch creates the new file itself. Do not use copytruncate, which loses lines.
    nocreate
    postrotate
        systemctl reload wirewatch
    endscript
}
`;
