//! Leases: who is alive, and who takes over what the dead have left.

use super::error::Stop;
use super::read::{HEAD, head_of};
use super::{Page, int};
use outlast_engine::record::Head;
use outlast_engine::store::Done;
use rusqlite::params;

impl Page<'_> {
    pub fn renew(&self) -> Result<Done, Stop> {
        let mut upsert = self.sql.prepare_cached(
            "INSERT INTO leases (owner, until) VALUES (?1, ?2)
             ON CONFLICT (owner) DO UPDATE SET until = excluded.until",
        )?;
        upsert.execute(params![&*self.me.name, int(self.me.lease())])?;
        Ok(Done::Kept)
    }

    pub fn claim(&self, server: &str) -> Result<Done, Stop> {
        self.renew()?;
        let mut claimed = Vec::new();
        for owner in self.gone(server)? {
            claimed.extend(self.take_over(server, &owner)?);
        }
        claimed.sort_by_key(|head| head.number);
        Ok(Done::Claimed(claimed))
    }

    /// Owners of open records of a server that are gone.
    fn gone(&self, server: &str) -> rusqlite::Result<Vec<String>> {
        let mut select = self.sql.prepare_cached(
            "SELECT owner, coalesce((SELECT until FROM leases WHERE leases.owner = open.owner), 0)
             FROM (SELECT DISTINCT owner FROM records WHERE server = ?1 AND state < 2 AND owner <> ?2) AS open",
        )?;
        let owners = select.query_map(params![server, &*self.me.name], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        })?;
        let owners = owners.collect::<rusqlite::Result<Vec<_>>>()?;
        let gone = owners.into_iter().filter(|(owner, until)| self.me.outlives(owner, *until));
        Ok(gone.map(|(owner, _)| owner).collect())
    }

    fn take_over(&self, server: &str, owner: &str) -> rusqlite::Result<Vec<Head>> {
        let mut update = self.sql.prepare_cached(&format!(
            "UPDATE records SET owner = ?3, epoch = epoch + 1, revision = revision + 1
             WHERE server = ?1 AND owner = ?2 AND state < 2 RETURNING {HEAD}"
        ))?;
        update.query_map(params![server, owner, &*self.me.name], head_of)?.collect()
    }

    /// Forgets owners that are gone and have left nothing open.
    pub fn forget_owners(&self) -> rusqlite::Result<()> {
        let mut select = self.sql.prepare_cached(
            "SELECT owner, until FROM leases
             WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.owner = leases.owner AND state < 2)",
        )?;
        let idle = select
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let mut delete = self.sql.prepare_cached("DELETE FROM leases WHERE owner = ?1")?;
        for (owner, until) in idle {
            if self.me.outlives(&owner, until) {
                delete.execute([owner])?;
            }
        }
        Ok(())
    }
}
