-- The parties and guilds of a cluster. As in `cluster.sql`, each transaction is one function, which the crate `throng_cluster` calls and
-- documents (`GroupRequest`). Results: 0 it is done, 1 the run has ended, 2 another revision, 3 in a group already, 4 no such group, 5 the
-- group is full. Kinds: 0 a party, 1 a guild.
CREATE TABLE cluster_group_counter (
    revision BIGINT NOT NULL,
    last_id BIGINT NOT NULL
);
COMMENT ON TABLE cluster_group_counter IS 'one row; changes of groups lock it, so they are committed in the order of their revisions';
INSERT INTO cluster_group_counter VALUES (0, 0);
CREATE TABLE cluster_group (
    kind INTEGER NOT NULL,
    id BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);
COMMENT ON COLUMN cluster_group.revision IS 'its last change';
CREATE INDEX cluster_group_revision ON cluster_group (revision);
CREATE TABLE cluster_group_player (
    player BIGINT NOT NULL,
    kind INTEGER NOT NULL,
    id BIGINT,
    revision BIGINT NOT NULL,
    replaced BIGINT NOT NULL,
    is_founder BOOLEAN NOT NULL,
    PRIMARY KEY (player, kind)
);
COMMENT ON COLUMN cluster_group_player.id IS 'its group; NULL: it has left the last one';
COMMENT ON COLUMN cluster_group_player.revision IS 'its last change; a change with another one is refused';
COMMENT ON COLUMN cluster_group_player.replaced IS 'the revision before that: with it, the last change is repeated';
CREATE INDEX cluster_group_player_revision ON cluster_group_player (revision);
CREATE INDEX cluster_group_player_group ON cluster_group_player (kind, id, revision) WHERE id IS NOT NULL;

-- `_change`: 0 create, 1 join `_id`, 2 leave. Returns the group and the revision after the change, and the other members.
CREATE FUNCTION cluster_change_group(_node INTEGER, _run BIGINT, _player BIGINT, _kind INTEGER, _change INTEGER, _id BIGINT,
    _revision BIGINT, _members_max BIGINT, _at_ms BIGINT, OUT _code INTEGER, OUT _group BIGINT, OUT _new BIGINT, OUT _others BIGINT[])
    LANGUAGE plpgsql AS $$
DECLARE
    _row cluster_group_player%ROWTYPE;
    _is_known BOOLEAN;
    _last BIGINT;
    _changed BIGINT;
BEGIN
    _code := 1;
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN;
    END IF;
    SELECT revision, last_id INTO _new, _last FROM cluster_group_counter FOR UPDATE;
    SELECT * INTO _row FROM cluster_group_player WHERE player = _player AND kind = _kind;
    _is_known := FOUND;
    IF coalesce(_row.revision, 0) <> _revision THEN
        _code := 2;
        IF _is_known AND _row.replaced = _revision AND (CASE _change
            WHEN 0 THEN _row.id IS NOT NULL AND _row.is_founder
            WHEN 1 THEN _row.id IS NOT DISTINCT FROM _id AND NOT _row.is_founder
            ELSE _row.id IS NULL END)
        THEN
            _code := 0;
            _group := _row.id;
            _new := _row.revision;
            _others := '{}';
        END IF;
        RETURN;
    END IF;
    IF _change < 2 AND _row.id IS NOT NULL THEN
        _code := 3;
        RETURN;
    END IF;
    IF _change = 0 THEN
        LOOP
            -- 0 and 2^32 - 1 mean "none" elsewhere.
            _last := _last % 4294967294 + 1;
            EXIT WHEN NOT EXISTS (SELECT FROM cluster_group WHERE kind = _kind AND id = _last);
        END LOOP;
        _group := _last;
    ELSIF _change = 1 THEN
        IF NOT EXISTS (SELECT FROM cluster_group WHERE kind = _kind AND id = _id) THEN
            _code := 4;
            RETURN;
        END IF;
        IF (SELECT count(*) FROM cluster_group_player WHERE kind = _kind AND id = _id) >= _members_max THEN
            _code := 5;
            RETURN;
        END IF;
        _group := _id;
    END IF;
    _new := _new + 1;
    UPDATE cluster_group_counter SET revision = _new, last_id = _last;
    INSERT INTO cluster_group_player (player, kind, id, revision, replaced, is_founder)
        VALUES (_player, _kind, _group, _new, _revision, _change = 0)
        ON CONFLICT (player, kind) DO UPDATE SET id = excluded.id, revision = excluded.revision, replaced = excluded.replaced,
            is_founder = excluded.is_founder;
    _changed := coalesce(_group, _row.id);
    SELECT coalesce(array_agg(player ORDER BY player < 0, player), '{}') INTO _others FROM cluster_group_player
        WHERE kind = _kind AND id = _changed AND player <> _player;
    IF _group IS NULL AND cardinality(_others) = 0 THEN
        DELETE FROM cluster_group WHERE kind = _kind AND id = _changed;
    ELSIF _changed IS NOT NULL THEN
        INSERT INTO cluster_group (kind, id, revision) VALUES (_kind, _changed, _new)
            ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision;
    END IF;
    _code := 0;
END $$;

-- The groups of players: first a row per player and kind, then one per member of these groups, with `_group_revision`.
CREATE FUNCTION cluster_read_groups(_players BIGINT[]) RETURNS TABLE (_player BIGINT, _kind INTEGER, _id BIGINT, _revision BIGINT,
    _group_revision BIGINT, _owner_node INTEGER, _owner_run BIGINT) LANGUAGE sql STABLE AS $$
    WITH wanted AS (
        SELECT player, kind, id, revision FROM cluster_group_player WHERE player = ANY(_players)
    ), members AS (
        SELECT member.player, member.kind, member.id, member.revision, own.revision AS group_revision, held.node, held.run
        FROM (SELECT DISTINCT kind, id FROM wanted WHERE id IS NOT NULL) AS found
        JOIN cluster_group AS own ON own.kind = found.kind AND own.id = found.id
        JOIN cluster_group_player AS member ON member.kind = found.kind AND member.id = found.id
        LEFT JOIN cluster_player AS held ON held.player = member.player
    )
    SELECT * FROM (SELECT player, kind, id, revision, NULL::BIGINT, NULL::INTEGER, NULL::BIGINT FROM wanted
        ORDER BY player < 0, player, kind) AS players
    UNION ALL
    SELECT * FROM (SELECT * FROM members ORDER BY kind, id, revision) AS groups
$$;

-- The changed players of a run in one row, with the last revision that is included. `_after` is NULL for none.
CREATE FUNCTION cluster_read_changed_groups(_node INTEGER, _run BIGINT, _after BIGINT, _changes_max BIGINT, OUT _players BIGINT[],
    OUT _revision BIGINT) LANGUAGE sql STABLE AS $$
    WITH span AS (
        SELECT coalesce(_after, revision) AS after, least(revision, coalesce(_after, revision) + _changes_max) AS until
        FROM cluster_group_counter
    ), changed AS (
        SELECT player FROM cluster_group_player, span WHERE revision > span.after AND revision <= span.until
        UNION
        SELECT member.player FROM span
        JOIN cluster_group AS own ON own.revision > span.after AND own.revision <= span.until
        JOIN cluster_group_player AS member ON member.kind = own.kind AND member.id = own.id
    )
    SELECT ARRAY(SELECT changed.player FROM changed JOIN cluster_player AS held ON held.player = changed.player
        AND held.node = _node AND held.run = _run ORDER BY changed.player < 0, changed.player), span.until FROM span
$$;
