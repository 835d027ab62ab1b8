// nginx as a reverse proxy that could stand in the sidecar's place: connections kept on both
// sides, nothing buffered (event streams must not be held back), nothing logged. Pure.

export interface NginxConfigInput {
  readonly dir: string;
  readonly port: number;
  readonly upstreamPort: number;
}

export function renderNginxConfig({ dir, port, upstreamPort }: NginxConfigInput): string {
  const tempPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${dir}/${name};`,
  );
  // One process: a master that is killed would leave its worker serving the port.
  return `daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr;
events { worker_connections 4096; }
http {
  access_log off;
  tcp_nodelay on;
  client_body_buffer_size 1m;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
${tempPaths.join('\n')}
  upstream mcp {
    server 127.0.0.1:${upstreamPort};
    keepalive 256;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://mcp;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
}
