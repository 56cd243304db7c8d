/** The text of the systemd unit and of the user's entry (systemd.exec(5), sysusers.d(5)). No I/O. */

export interface UnitTerms {
  /** The program and what comes before the command's name, absolute. */
  readonly program: readonly string[];
  readonly data: string;
  readonly config: string;
  readonly user: string;
  /** systemd makes the user for as long as the service runs. */
  readonly isDynamic: boolean;
  /** Folders outside the data folder without which it cannot start: the drop folder. */
  readonly needed: readonly string[];
  /** Others in which it writes, for backups and logs: a disk that is missing must not keep the service down. */
  readonly optional: readonly string[];
  /** Files and folders that it reads beside those: photos, certificate, key, secrets. */
  readonly readable: readonly string[];
  /** Those it listens on; 0 is any, or none. */
  readonly ports: readonly number[];
  /** systemd-notify is there, which tells systemd when connections are accepted. */
  readonly canNotify: boolean;
}

const PRIVILEGED_PORTS = 1024;
const STATE_FOLDER = /^\/var\/lib\/([\w-][\w.-]*)$/;
const HOMES = ['/home', '/root', '/run/user'];
const TEMPORARY = ['/tmp', '/var/tmp'];

/** Is the path in a folder that the unit hides as somebody's home? */
export function isInHome(path: string): boolean {
  return isIn(path, HOMES);
}

/** Is the path in a folder that the unit replaces by one of its own (PrivateTmp)? */
export function isTemporary(path: string): boolean {
  return isIn(path, TEMPORARY);
}

/** The name for `StateDirectory=`; null where systemd does not make the data folder. */
export function stateDirectory(data: string): string | null {
  return STATE_FOLDER.exec(data)?.[1] ?? null;
}

export function unitText(terms: UnitTerms): string {
  return [unitSection(terms), serviceSection(terms), hardening(terms), INSTALL].join('\n');
}

export function sysusersText(user: string, data: string): string {
  return `# The user of the service, without a login. systemd-sysusers makes it.\nu ${user} - "Wirewatch" ${words([data])}\n`;
}

function unitSection({ data, needed }: UnitTerms): string {
  return `[Unit]
Description=Wirewatch, reports where stories and photos were found
Wants=network-online.target
After=network-online.target
RequiresMountsFor=${words([data, ...needed])}
# To be told when the service ends for good, as with exit code 78 (other failures restart it): write a unit that tells
# you, and name it with "systemctl edit wirewatch":
# [Unit]
# OnFailure=wirewatch-failed.service
`;
}

function serviceSection(terms: UnitTerms): string {
  const { program, data, config, canNotify } = terms;
  const line = words([...program, 'serve', '--data', data, '--config', config]).replaceAll('$', '$$$$');
  return `[Service]
${canNotify ? NOTIFY : EXEC}
ExecStart=${line}
# Opens the log anew, looks for a renewed certificate.
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
# The configuration or the data folder is wrong: trying again would not mend it.
RestartPreventExitStatus=78
# A start that brings a large database up to date takes as long as it takes.
TimeoutStartSec=infinity
# Every connection is a file.
LimitNOFILE=65536
# The executable keeps the library of its database here.
CacheDirectory=wirewatch
CacheDirectoryMode=0700
Environment=WIREWATCH_ADDON_DIR=/var/cache/wirewatch/addon
`;
}

const NOTIFY = `# systemd-notify, a process of its own, says when connections are accepted.
Type=notify
NotifyAccess=all
WatchdogSec=3min`;

const EXEC = `# Type=notify would be better, but systemd-notify was not found.
Type=exec`;

function hardening(terms: UnitTerms): string {
  const { user, isDynamic, data, needed, optional, readable, ports } = terms;
  const state = stateDirectory(data);
  // With "-" systemd leaves out what is not there; without it, the service would not start (systemd.exec(5)).
  const paths = [...(state === null ? [data] : []), ...needed, ...optional.map((folder) => `-${folder}`)];
  const needsHome = [data, terms.config, ...needed, ...optional, ...readable].some(isInHome);
  return `# It sees and does what it needs, and nothing else.
${isDynamic ? `DynamicUser=yes\nUser=${user}` : `User=${user}`}
UMask=0027
${state === null ? '' : `StateDirectory=${state}\nStateDirectoryMode=0700\n`}${paths.length === 0 ? '' : `ReadWritePaths=${words(paths)}\n`}ProtectSystem=strict
ProtectHome=${needsHome ? 'read-only' : 'yes'}
PrivateTmp=yes
PrivateDevices=yes
PrivateMounts=yes
${ports.some((port) => port > 0 && port < PRIVILEGED_PORTS) ? PRIVILEGED_PORT : UNPRIVILEGED}
NoNewPrivileges=yes
RestrictSUIDSGID=yes
LockPersonality=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RemoveIPC=yes
KeyringMode=private
# AF_UNIX for systemd-notify.
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
# A scheduled backup gives way to all else.
SystemCallFilter=setpriority
SystemCallErrorNumber=EPERM
# Not MemoryDenyWriteExecute: JavaScript is compiled to machine code while it runs.
`;
}

const PRIVILEGED_PORT = `# To listen on a port below 1024; PrivateUsers would take this away.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE`;

const UNPRIVILEGED = `PrivateUsers=yes
CapabilityBoundingSet=
AmbientCapabilities=`;

const INSTALL = `[Install]
WantedBy=multi-user.target
`;

/** Words as a unit takes them: quoted where needed, and without specifiers (systemd.syntax(7)). */
function words(all: readonly string[]): string {
  return all
    .map((word) => {
      const plain = word.replaceAll('%', '%%');
      return /^[\w./:@%+,=-]+$/.test(plain) ? plain : `"${plain.replace(/["\\]/g, '\\$&')}"`;
    })
    .join(' ');
}

function isIn(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}
