/** The text of the systemd unit and of the user's entry (systemd.exec(5), sysusers.d(5)). No I/O. */

export interface UnitTerms {
  /** The program and its arguments before the name of the command, absolute. */
  readonly program: readonly string[];
  readonly data: string;
  readonly config: string;
  readonly user: string;
  /** systemd creates the user while the service runs. */
  readonly isDynamic: boolean;
  /** Folders outside the data folder that it needs to start: the drop folder. */
  readonly needed: readonly string[];
  /** Other folders that it writes to, for backups and logs: if their disk is missing, the service must still start. */
  readonly optional: readonly string[];
  /** Other files and folders that it reads: photos, certificate, key, secrets. */
  readonly readable: readonly string[];
  /** The ports that it listens on; 0 is any, or none. */
  readonly ports: readonly number[];
  /** Whether systemd-notify exists, which tells systemd when connections are accepted. */
  readonly canNotify: boolean;
}

const PRIVILEGED_PORTS = 1024;
const STATE_FOLDER = /^\/var\/lib\/([\w-][\w.-]*)$/;
const HOMES = ['/home', '/root', '/run/user'];
const TEMPORARY = ['/tmp', '/var/tmp'];

/** Whether the path is in a home folder, which the unit hides. */
export function isInHome(path: string): boolean {
  return isIn(path, HOMES);
}

/** Whether the path is in a folder that the unit replaces by its own (PrivateTmp). */
export function isTemporary(path: string): boolean {
  return isIn(path, TEMPORARY);
}

/** The name for `StateDirectory=`; null if systemd does not create the data folder. */
export function stateDirectory(data: string): string | null {
  return STATE_FOLDER.exec(data)?.[1] ?? null;
}

export function unitText(terms: UnitTerms): string {
  return [unitSection(terms), serviceSection(terms), hardening(terms), INSTALL].join('\n');
}

export function sysusersText(user: string, data: string): string {
  return `# The user of the service, without a login. systemd-sysusers creates it.\nu ${user} - "Wirewatch" ${words([data])}\n`;
}

function unitSection({ data, needed }: UnitTerms): string {
  return `[Unit]
Description=Wirewatch, reports where stories and photos were found
Wants=network-online.target
After=network-online.target
RequiresMountsFor=${words([data, ...needed])}
# To be notified when the service stops for good, as with exit code 78 (it restarts after other failures): write a unit
# that notifies you, and name it with "systemctl edit wirewatch":
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
# Reopens the log file and loads a renewed certificate.
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
# The configuration or the data folder is wrong: a restart would not help.
RestartPreventExitStatus=78
# A start may have to rebuild a large database, which takes time.
TimeoutStartSec=infinity
# Every connection uses a file descriptor.
LimitNOFILE=65536
# A core dump would hold keys, the secret and detections.
LimitCORE=0
# The executable unpacks its SQLite library here.
CacheDirectory=wirewatch
CacheDirectoryMode=0700
Environment=WIREWATCH_ADDON_DIR=/var/cache/wirewatch/addon
`;
}

const NOTIFY = `# systemd-notify, a separate process, reports when connections are accepted.
Type=notify
NotifyAccess=all
WatchdogSec=3min`;

const EXEC = `# Type=notify would be better, but systemd-notify was not found.
Type=exec`;

function hardening(terms: UnitTerms): string {
  const { user, isDynamic, data, needed, optional, readable, ports } = terms;
  const state = stateDirectory(data);
  // With "-", systemd ignores a missing folder; without it, the service would not start (systemd.exec(5)).
  const paths = [...(state === null ? [data] : []), ...needed, ...optional.map((folder) => `-${folder}`)];
  const needsHome = [data, terms.config, ...needed, ...optional, ...readable].some(isInHome);
  return `# The service has access to what it needs, and to nothing else.
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
# A scheduled backup lowers its own priority.
SystemCallFilter=setpriority
SystemCallErrorNumber=EPERM
# MemoryDenyWriteExecute is not possible: JavaScript is compiled to machine code at run time.
`;
}

const PRIVILEGED_PORT = `# To listen on a port below 1024; PrivateUsers would not allow it.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE`;

const UNPRIVILEGED = `PrivateUsers=yes
CapabilityBoundingSet=
AmbientCapabilities=`;

const INSTALL = `[Install]
WantedBy=multi-user.target
`;

/** Words for a unit: quoted if needed, and without specifiers (systemd.syntax(7)). */
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
