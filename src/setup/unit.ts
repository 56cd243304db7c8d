/** The systemd unit: that of `config/`, with the paths and the user of an installation (systemd.exec(5)). */
import { packedText } from '../packed.ts';

export interface UnitTerms {
  /** The program and its arguments before the name of the command, absolute. */
  readonly program: readonly string[];
  readonly data: string;
  readonly config: string;
  readonly user: string;
  /** Folders outside the data folder that it needs to start: the drop folder. */
  readonly needed: readonly string[];
  /** Other folders that it writes to, for the copy and logs: if their disk is missing, the service must still start. */
  readonly optional: readonly string[];
  /** Other files and folders that it reads: photos, certificate, key, secrets. */
  readonly readable: readonly string[];
  /** The ports that it listens on; 0 is any, or none. */
  readonly ports: readonly number[];
}

const PRIVILEGED_PORTS = 1024;

/** Whether the path is in a home folder, which the unit hides. */
export const isInHome = (path: string): boolean => /^\/(home|root|run\/user)(\/|$)/.test(path);

export function unitText({ program, data, config, needed, optional, ...terms }: UnitTerms): string {
  const command = words([...program, 'serve', '--data', data, '--config', config]).replaceAll('$', '$$$$');
  // Empty if systemd does not create the data folder.
  const [, state = ''] = /^\/var\/lib\/([\w-][\w.-]*)$/.exec(data) ?? [];
  const own = state === '' ? [data] : [];
  const isPrivileged = terms.ports.some((port) => port > 0 && port < PRIVILEGED_PORTS);
  const capability = isPrivileged ? 'CAP_NET_BIND_SERVICE' : '';
  const needsHome = [data, config, ...needed, ...optional, ...terms.readable].some(isInHome);
  const values = {
    RequiresMountsFor: words([data, ...needed]),
    ExecStart: command,
    User: terms.user,
    StateDirectory: state,
    // With "-", systemd ignores a missing folder; without it, the service would not start.
    ReadWritePaths: words([...own, ...needed, ...optional.map((folder) => `-${folder}`)]),
    ProtectHome: needsHome ? 'read-only' : 'yes',
    PrivateUsers: isPrivileged ? 'no' : 'yes',
    CapabilityBoundingSet: capability,
    AmbientCapabilities: capability,
  };
  return Object.entries(values).reduce(
    (text, [name, value]) => text.replace(new RegExp(`^${name}=.*$`, 'm'), () => `${name}=${value}`),
    packedText('config', 'wirewatch.service'),
  );
}

/** Words for a unit: quoted if needed, and without specifiers (systemd.syntax(7)). */
function words(all: readonly string[]): string {
  return all
    .map((word) => {
      const plain = word.replaceAll('%', '%%');
      return /^[\w./:@%+,=-]+$/.test(plain) ? plain : `"${plain.replace(/["\\]/g, '\\$&')}"`;
    })
    .join(' ');
}
