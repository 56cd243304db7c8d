#!/bin/sh
# Starts Ceph's S3 service on loopback, with one monitor and one store in memory, and makes a user.
# Usage: ceph.sh FOLDER PORT MONITOR_PORT ACCESS SECRET. FOLDER is new; its file `ready` appears once the service answers; the
# processes are those in FOLDER/pids. Needs Debian's radosgw, ceph-mon and ceph-osd.
set -eu
folder=$1 port=$2 mon=$3 access=$4 secret=$5
export CEPH_CONF="$folder/ceph.conf"
mkdir -p "$folder/mon" "$folder/osd"
cat > "$CEPH_CONF" <<END
[global]
fsid = 6f9c3d0a-2c7e-4b43-9d5d-0a4f6c1f7a10
mon_initial_members = a
mon_host = v1:127.0.0.1:$mon
public_addr = 127.0.0.1
ms_bind_msgr2 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
log_file = $folder/\$name.log
log_to_stderr = false
run_dir = $folder
admin_socket =
pid_file =
mon_data = $folder/mon
mon_data_avail_crit = 1
mon_data_avail_warn = 1
mon_allow_pool_size_one = true
osd_data = $folder/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
osd_pool_default_pgp_num = 1
osd_crush_chooseleaf_type = 0
osd_crush_update_on_start = false
osd_class_update_on_start = false
rgw_region_root_pool = .rgw.root
rgw_enable_usage_log = false
rgw_thread_pool_size = 64
rgw_data = $folder/rgw
rgw_frontends = beast endpoint=127.0.0.1:$port
END
started() { echo "$1" >> "$folder/pids"; }

monmaptool --create --clobber --fsid 6f9c3d0a-2c7e-4b43-9d5d-0a4f6c1f7a10 --addv a "v1:127.0.0.1:$mon" "$folder/map"
ceph-mon --mkfs -i a --monmap "$folder/map"
ceph-mon -f -i a & started $!
ceph() { timeout 60 /usr/bin/ceph --connect-timeout 60 "$@"; }
ceph osd new 0f2ddc3c-7a3e-4b5e-9a6b-3c1f0d6a2b11
ceph-osd --mkfs -i 0 --osd-uuid 0f2ddc3c-7a3e-4b5e-9a6b-3c1f0d6a2b11
ceph osd crush add osd.0 1 root=default host=localhost
ceph-osd -f -i 0 & started $!
timeout 60 radosgw-admin -n client.admin user create --uid wirewatch --display-name Wirewatch --access-key "$access" --secret-key "$secret"
radosgw -f -n client.rgw & started $!
touch "$folder/ready"
wait
