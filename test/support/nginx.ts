/** nginx in a folder of its own, in the foreground. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The reason to skip tests that need it; false if it is installed. */
export const WITHOUT_NGINX = spawnSync('nginx', ['-v']).status !== 0 && 'nginx is not installed';

/** @param http what the block `http` of its configuration has, besides the paths of its files */
export function startNginx(folder: string, http: string): ChildProcess {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${of};`);
  const config = `daemon off; master_process off; pid pid; error_log error.log; events {}
    http { access_log off; ${paths.join(' ')}\n${http}\n}`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  return spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], { stdio: 'ignore' });
}
