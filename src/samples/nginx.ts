/** nginx as a proxy in front of the appliance. */
export const NGINX = `# nginx in front of Wirewatch on the same machine. Install as /etc/nginx/conf.d/wirewatch.conf.
# Replace detections.example.org, and the port if [server] port is not 8080. Set in wirewatch.toml:
#   [server] host = "127.0.0.1", base_url = "https://detections.example.org"
# Wirewatch trusts a proxy on the same machine. For one on another machine, set [server] trusted_proxies to its address.

upstream wirewatch {
    server 127.0.0.1:8080;
    keepalive 32;
}

server {
    listen 80;
    listen [::]:80;
    server_name detections.example.org;
    # No redirect: a client that sends its key unencrypted must notice the mistake.
    return 403;
}

server {
    listen 443 ssl;
    listen [::]:443 ssl;
    server_name detections.example.org;
    ssl_certificate /etc/letsencrypt/live/detections.example.org/fullchain.pem;
    ssl_certificate_key /etc/letsencrypt/live/detections.example.org/privkey.pem;
    ssl_protocols TLSv1.2 TLSv1.3;

    # For requests with long filters: Wirewatch accepts 32 KiB of request line and headers.
    large_client_header_buffers 4 32k;

    location / {
        proxy_pass http://wirewatch;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $host;
        # Without this line, clients could choose the address that Wirewatch sees.
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
}
`;
