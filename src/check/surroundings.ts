/** What a start needs besides its data folder: the drop folder, certificates, log file and alert command. */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { isInTheClear } from '../config/listening.ts';
import type { Config } from '../config/load.ts';
import { ForeignFolder, inFolder, OWN_FOLDERS } from '../drop/own-folder.ts';
import { loadTlsPair, validityError } from '../http/tls-pair.ts';
import { reasonOf } from '../refused.ts';
import { formatMs } from '../time.ts';

export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'bad';
  readonly detail: string;
  /** Null if there is nothing to do. */
  readonly what_to_do: string | null;
}

export type Outcome = Omit<Finding, 'check'>;

export function ok(detail: string): Outcome {
  return { status: 'ok', detail, what_to_do: null };
}

export function warn(detail: string, what_to_do: string): Outcome {
  return { status: 'warn', detail, what_to_do };
}

export function bad(detail: string, what_to_do: string): Outcome {
  return { status: 'bad', detail, what_to_do };
}

/** What `work` finds; what it throws is bad. @param path that is checked, for the reason */
export function tried(path: string, todo: string, work: () => Outcome): Outcome {
  try {
    return work();
  } catch (error) {
    return bad(`${path}: ${reasonOf(error, path)}`, todo);
  }
}

export async function checkSurroundings(
  config: Config,
  nowMs: number,
): Promise<(readonly [check: string, Outcome])[]> {
  const { ingest, log, alerts } = config;
  return [
    ['drop folder', checkDropFolder(ingest.drop)],
    ['TLS', await checkTls(config, nowMs)],
    ...(log.file === '' ? [] : [['log file', checkLogFile(log.file)] as const]),
    ...(alerts.command.length === 0 ? [] : [['alert command', checkAlertCommand(alerts.command)] as const]),
  ];
}

/**
 * Whether files can be moved in the folder as ingest does. The file for the check has a name that begins with a dot,
 * which a running appliance ignores, and is removed.
 */
function checkDropFolder(folder: string): Outcome {
  const rights =
    'Give the user that Wirewatch runs as write access to the folder and its subfolders, or name another with [ingest] drop.';
  return tried(folder, rights, () => {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found === undefined)
      return warn(
        `${folder} does not exist yet`,
        'The first start creates it and its subfolders. Check that it is the right folder, and that its disk is mounted.',
      );
    const draft = join(folder, `.check-${process.pid}-${randomBytes(6).toString('hex')}`);
    try {
      writeFileSync(draft, '', { flag: 'wx', mode: 0o600 });
      renameSync(draft, `${draft}.renamed`);
    } finally {
      rmSync(draft, { force: true });
      rmSync(`${draft}.renamed`, { force: true });
    }
    for (const path of OWN_FOLDERS.map((name) => join(folder, name)).filter((own) => existsSync(own))) {
      try {
        inFolder(folder, path.slice(folder.length + 1), () => {});
      } catch (error) {
        if (error instanceof ForeignFolder) return bad(error.problem, error.repair);
      }
      accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
      if (statSync(path).dev !== found.dev)
        return bad(
          `${path} is on another file system than ${folder}: files cannot be renamed into it`,
          'Put the drop folder and its subfolders on one file system.',
        );
    }
    return ok(`${folder}: files can be created and renamed, and its subfolders are on the same file system`);
  });
}

async function checkTls({ server }: Config, nowMs: number): Promise<Outcome> {
  const { host, tls_certificate: certificate, tls_key: key } = server;
  if (certificate === '')
    return isInTheClear(server)
      ? warn(
          `no certificate, and ${host} can be reached from other machines: keys cross the network unencrypted`,
          'Set [server] tls_certificate and tls_key. Or put a TLS proxy in front: on this machine with [server] host 127.0.0.1, or on another with its address in [server] trusted_proxies.',
        )
      : ok('no certificate: plain HTTP, for a proxy in front');
  const todo =
    'Install a valid certificate with its key, which this user can read; a running Wirewatch loads them by itself.';
  try {
    const paths = { certificate, key };
    const pair = await loadTlsPair(paths);
    const fault = validityError(paths, pair, nowMs);
    if (fault === null) return ok(`${certificate}, valid until ${formatMs(pair.validToMs)}`);
    return (nowMs >= pair.validFromMs && nowMs < pair.validToMs ? warn : bad)(fault, todo);
  } catch (error) {
    return bad(reasonOf(error), todo);
  }
}

/** The file is not opened, since that would create it. */
function checkLogFile(path: string): Outcome {
  const todo = 'Create the folder, and give the user that Wirewatch runs as write access.';
  return tried(path, todo, () => {
    accessSync(existsSync(path) ? path : dirname(path), constants.W_OK);
    return ok(path);
  });
}

/** Looked for as the system does when it runs the command. */
function checkAlertCommand([program = '']: readonly string[]): Outcome {
  const places = program.includes('/') ? [''] : (process.env.PATH ?? '').split(delimiter);
  const todo = 'Install the program, or correct [alerts] command: until then, nobody is told of alerts.';
  const outcomes = places.map((folder) => {
    const path = join(folder, program);
    return tried(path, todo, () => {
      accessSync(path, constants.X_OK);
      return ok(path);
    });
  });
  return outcomes.find(({ status }) => status === 'ok') ?? outcomes[0] ?? bad(program, todo);
}
