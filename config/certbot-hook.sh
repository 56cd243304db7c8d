#!/bin/sh
# Install as /etc/letsencrypt/renewal-hooks/deploy/wirewatch, mode 0755: certbot runs it as root after each renewal.
# For the first certificate, run it once by hand:
#   RENEWED_DOMAINS=detections.example.org RENEWED_LINEAGE=/etc/letsencrypt/live/detections.example.org sh THIS_FILE
# Set in wirewatch.toml:
#   [server] tls_certificate = "/etc/wirewatch/tls/fullchain.pem", tls_key = "/etc/wirewatch/tls/privkey.pem"
# Wirewatch checks both files every two seconds: no reload is needed.
set -eu
umask 077
domain=detections.example.org
folder=/etc/wirewatch/tls
group=wirewatch

case " $RENEWED_DOMAINS " in
*" $domain "*) ;;
*) exit 0 ;;
esac

install -d -m 0750 -g "$group" "$folder"
# Copy, then rename: Wirewatch never reads an incomplete file.
for name in privkey fullchain; do
    install -m 0640 -g "$group" "$RENEWED_LINEAGE/$name.pem" "$folder/$name.pem.new"
done
for name in privkey fullchain; do
    mv -f "$folder/$name.pem.new" "$folder/$name.pem"
done
