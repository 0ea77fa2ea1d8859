/** A real nginx in front of a server: its own prefix, on a loopback port, with a certificate made for the test. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

/** Why nginx cannot be had on this machine, or null. */
export function nginxProblem(): string | null {
  const missing = [['nginx', '-v'], ['openssl', 'version']].filter(([tool, flag]) => spawnSync(tool!, [flag!], { stdio: 'ignore' }).error).map(([tool]) => tool);
  return missing.length > 0 ? `a real proxy needs ${missing.join(' and ')}` : null;
}

/** A running nginx. `ca` is the PEM text to trust. */
export interface Nginx {
  readonly http: string;
  readonly https: string;
  readonly ca: string;
  stop(): Promise<void>;
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise<net.Server>((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      resolve(server);
    });
  })));
  const ports = servers.map((server) => (server.address() as net.AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Starts nginx in front of `upstream` (host:port); `directives` go into the location. Rejects with its own words when it does not start. */
export async function startNginx(upstream: string, directives: string, more = ''): Promise<Nginx> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-nginx-'));
  const [plain, secure] = await freePorts(2);
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', path.join(folder, 'key.pem'), '-out', path.join(folder, 'cert.pem'), '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ');
  writeFileSync(
    path.join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log stderr; worker_processes 1; ${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 256; }
http {
  access_log off; ${temporary}
  ${more}
  server {
    listen 127.0.0.1:${plain};
    listen 127.0.0.1:${secure} ssl http2;
    ssl_certificate cert.pem; ssl_certificate_key key.pem;
    location / { proxy_pass http://${upstream}; ${directives} }
  }
}
`,
  );
  const child = spawn('nginx', ['-p', folder, '-c', path.join(folder, 'nginx.conf')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let words = '';
  child.stderr.on('data', (part: Buffer) => (words += part.toString()));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    process.removeListener('exit', kill);
    rmSync(folder, { recursive: true, force: true });
  };
  for (let attempt = 0; ; attempt += 1) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = net.connect(plain!, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => {
        resolve(false);
      });
    });
    if (open) break;
    if (child.exitCode !== null || attempt > 200) {
      await stop();
      throw new Error(`nginx did not start: ${words}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { http: `http://127.0.0.1:${plain}`, https: `https://localhost:${secure}`, ca: readFileSync(path.join(folder, 'cert.pem'), 'utf8'), stop };
}
