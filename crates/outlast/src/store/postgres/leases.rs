//! Leases: who is alive, and who takes over what the dead have left.

use super::connection::Connection;
use super::error::{Failure, Stop};
use super::read::{head, head_of};
use super::statement::{Statement, count, text};
use super::transaction::Transaction;
use crate::store::Id;
use crate::store::owner::Me;
use outlast_engine::Wall;
use outlast_engine::limits::LEASE;
use outlast_engine::store::Done;

/// Owners of open records, whether they have given their lease back (whoever owns something has written one, in the same
/// transaction), and whether they have been silent for too long. While the database itself was away nobody could be
/// heard. Each step of the recursion is one look into an index, so it costs as much as there are owners, however
/// many records they have.
const OWNERS: &str = "
WITH RECURSIVE open AS (
    (SELECT owner FROM outlast.records WHERE state < 2 ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT owner FROM outlast.records WHERE state < 2 AND owner > open.owner ORDER BY owner LIMIT 1)
    FROM open WHERE owner IS NOT NULL)
SELECT open.owner, until IS NULL, coalesce(until, 0) <= outlast.clock() AND outlast.began() + $2 <= outlast.clock()
FROM open LEFT JOIN outlast.leases ON leases.owner = open.owner WHERE open.owner <> $1";

/// What they leave goes to us, unless one of them is heard of after all. `$4`: those who certainly do not run.
const TAKE: &str = concat!(
    "UPDATE outlast.records SET owner = $2, epoch = epoch + 1, revision = revision + 1
     WHERE server = $1 AND state < 2 AND owner = ANY ($3) AND (owner = ANY ($4)
        OR coalesce((SELECT until FROM outlast.leases WHERE leases.owner = records.owner), 0) <= outlast.clock())
     RETURNING ",
    head!()
);

/// Whether an owner has given its lease back, and whether it has been silent for too long.
const SILENT: &str = "
SELECT until IS NULL, coalesce(until, 0) <= outlast.clock() AND outlast.began() + $2 <= outlast.clock()
FROM (SELECT (SELECT until FROM outlast.leases WHERE owner = $1) AS until) AS lease";

/// Owners that say nothing and have left nothing open.
const FORGET: &str = "
DELETE FROM outlast.leases WHERE until <= outlast.clock()
    AND NOT EXISTS (SELECT FROM outlast.records WHERE records.owner = leases.owner AND state < 2)";

/// Owners that are gone.
#[derive(Debug, Default)]
pub struct Lost {
    all: Vec<Box<str>>,
    /// Those of them that certainly do not run.
    ended: Vec<Box<str>>,
}

/// We end in order.
pub async fn give_back(sql: &Connection, me: &Me) -> Result<(), Failure> {
    sql.rows(&Statement::new("DELETE FROM outlast.leases WHERE owner = $1").text(&me.name)).await.map(drop)
}

fn lease() -> u64 {
    LEASE.as_millis() as u64
}

impl Transaction<'_> {
    pub async fn claim(&self, server: &str) -> Result<Done, Stop> {
        let lost = self.lost.get_or_try_init(|| self.lost_owners()).await?;
        if lost.all.is_empty() {
            return Ok(Done::Claimed(Vec::new()));
        }
        let take = Statement::new(TAKE)
            .text(server)
            .text(&self.me.name)
            .blobs(lost.all.iter().map(|owner| owner.as_bytes()))
            .blobs(lost.ended.iter().map(|owner| owner.as_bytes()));
        let rows = self.sql.rows(&take).await?;
        let mut claimed = rows.iter().map(head_of).collect::<Result<Vec<_>, _>>()?;
        claimed.sort_by_key(|head| head.number);
        Ok(Done::Claimed(claimed))
    }

    /// Whose open records may be taken over. The same for every server of a submission.
    async fn lost_owners(&self) -> Result<Lost, Failure> {
        let owners = Statement::new(OWNERS).text(&self.me.name).int(lease());
        let mut lost = Lost::default();
        for row in self.sql.rows(&owners).await? {
            let owner = text(&row, 0);
            let ended = self.me.sees_the_end_of(&owner);
            if ended {
                lost.ended.push(owner.clone());
            }
            let left = row.get(1);
            if ended || left || (row.get(2) && !self.wary) {
                lost.all.push(owner);
            }
        }
        Ok(lost)
    }

    /// Whether another process lives, as far as anybody knows.
    pub async fn is_alive(&self, owner: &str) -> Result<bool, Failure> {
        if *owner == *self.me.name {
            return Ok(true);
        }
        if self.me.sees_the_end_of(owner) {
            return Ok(false);
        }
        let silent = self.sql.one(&Statement::new(SILENT).text(owner).int(lease())).await?;
        let (left, silent): (bool, bool) = (silent.get(0), silent.get(1));
        Ok(!left && (self.wary || !silent))
    }

    pub async fn forget_owners(&self) -> Result<(), Failure> {
        self.sql.rows(&Statement::new(FORGET)).await.map(drop)
    }

    /// What the database's clock shows.
    pub async fn now(&self) -> Result<Wall, Failure> {
        Ok(Wall(count(&self.sql.one(&Statement::new("SELECT outlast.clock()")).await?, 0)))
    }
}

/// The number of the last transaction of ours that was committed.
pub async fn last_turn(sql: &Connection, me: &Me) -> Result<Option<u64>, Failure> {
    let turn = Statement::new("SELECT turn FROM outlast.leases WHERE owner = $1").text(&me.name);
    Ok(sql.maybe(&turn).await?.map(|row| count(&row, 0)))
}

/// Records of ours that somebody was told were not made, because nobody could know.
const TAKE_BACK: &str = "
WITH gone AS (DELETE FROM outlast.records WHERE owner = $1 AND id = ANY ($2) AND revision = 1 RETURNING weight),
    sums AS (SELECT count(*) AS records, coalesce(sum(weight), 0)::bigint AS bytes FROM gone)
INSERT INTO outlast.usage (shard, records, bytes) SELECT 0, -records, -bytes FROM sums
ON CONFLICT (shard) DO UPDATE SET records = usage.records + excluded.records, bytes = usage.bytes + excluded.bytes";

pub async fn take_back(sql: &Connection, me: &Me, ids: &[Id]) -> Result<(), Failure> {
    let take = Statement::new(TAKE_BACK).text(&me.name).blobs(ids.iter().map(|id| &id[..]));
    sql.rows(&take).await.map(drop)
}
