/** nginx in front of the appliance. */
export const NGINX = `# nginx in front of Wirewatch on the same machine, for /etc/nginx/conf.d/wirewatch.conf.
# Change: detections.example.org, and the port if [server] port is another. Set in wirewatch.toml:
#   [server] host = "127.0.0.1", base_url = "https://detections.example.org"
# A proxy on the same machine is trusted. For one on another machine, set [server] trusted_proxies to its address.

upstream wirewatch {
    server 127.0.0.1:8080;
    keepalive 32;
}

server {
    listen 80;
    listen [::]:80;
    server_name detections.example.org;
    # Clients that send a key in clear must notice it.
    return 403;
}

server {
    listen 443 ssl;
    listen [::]:443 ssl;
    server_name detections.example.org;
    ssl_certificate /etc/letsencrypt/live/detections.example.org/fullchain.pem;
    ssl_certificate_key /etc/letsencrypt/live/detections.example.org/privkey.pem;
    ssl_protocols TLSv1.2 TLSv1.3;

    # Long filters in an address: Wirewatch accepts 32 KiB of request line and headers.
    large_client_header_buffers 4 32k;

    location / {
        proxy_pass http://wirewatch;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $host;
        # Without this line clients choose the address that they are known by.
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
}
`;
